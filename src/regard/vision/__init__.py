"""Models that read images: timm's and torchvision's, images as inputs, and where on them a model looks."""
