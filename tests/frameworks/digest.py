"""What a framework's program prints of its results: a hash of their bytes, so that two runs can be compared bit for bit."""

import hashlib


def digest(*arrays):
    """Of numpy arrays, or of tensors of torch."""
    sha = hashlib.sha256()
    for array in arrays:
        if hasattr(array, "detach"):
            array = array.detach().cpu().contiguous()
            array = array.view(dtype=__import__("torch").uint8).numpy() if array.dim() else array.numpy()
        sha.update(array.tobytes())
    return sha.hexdigest()[:16]
