"""The one operation that SGLang's rotary embedding looks for."""

import torch


def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    """Rotate the heads of `query` and `key` in place by their positions."""
    width = cos_sin_cache.shape[-1]
    cos, sin = cos_sin_cache[positions.flatten()].unsqueeze(1).chunk(2, dim=-1)
    for each in (query, key):
        if each is None:
            continue
        heads = each.view(positions.numel(), -1, head_size)[..., :width]
        one, two = heads.chunk(2, dim=-1) if is_neox else (heads[..., ::2], heads[..., 1::2])
        turned = one * cos - two * sin, two * cos + one * sin
        joined = torch.cat(turned, dim=-1) if is_neox else torch.stack(turned, dim=-1).flatten(-2)
        heads.copy_(joined)
