import torch
from digest import digest

torch.manual_seed(10)
a = torch.randn(128, 128, device="cuda", dtype=torch.float64)
print("fft", digest(torch.view_as_real(torch.fft.fft(a))), digest(torch.view_as_real(torch.fft.rfft2(a.float()))))
print("solve", digest(torch.linalg.solve(a, torch.ones(128, 2, device="cuda", dtype=torch.float64))))
print("svd", torch.linalg.svdvals(a)[0].item())
print("cholesky", digest(torch.linalg.cholesky(a @ a.T + 128 * torch.eye(128, device="cuda", dtype=torch.float64))))
sparse = torch.eye(64, device="cuda").to_sparse_csr()
print("sparse", digest(sparse @ torch.randn(64, 8, device="cuda")))
twice = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")
print("jiterator", digest(twice(torch.arange(100, device="cuda", dtype=torch.float32))))
