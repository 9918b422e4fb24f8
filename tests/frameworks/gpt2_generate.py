import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(11)
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=1000)).cuda().eval()
prompt = torch.arange(16, device="cuda").unsqueeze(0)
with torch.no_grad():
    print(model.generate(prompt, max_new_tokens=24, do_sample=False, pad_token_id=0).tolist())
