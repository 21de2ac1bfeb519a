PRESETS = ("none", "basic", "ideal")
def fuse(rows, preset, outputs, *, residual_read=False): return
