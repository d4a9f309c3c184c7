"""PyTorch's own samples of its operations through ``torch.compile(backend="spyrec")``, beside eager torch."""
