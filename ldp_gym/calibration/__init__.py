"""What channels are made with: accounting, noise scales, the clipped density, C(eps) and r*."""
