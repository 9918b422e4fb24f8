import torch
import torch.multiprocessing as mp


def child(queue, answers):
    tensor = queue.get()
    tensor.add_(5)
    torch.cuda.synchronize()
    answers.put(float(tensor.sum().item()))
    del tensor
    queue.get()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, answers = mp.Queue(), mp.Queue()
    process = mp.Process(target=child, args=(queue, answers))
    process.start()
    tensor = torch.arange(1000, device="cuda", dtype=torch.float32)
    queue.put(tensor)
    print(answers.get(timeout=120), tensor.sum().item())
    queue.put(None)
    process.join(60)
    print(process.exitcode)
