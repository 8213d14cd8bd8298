"""Images and labels: the embedded digits, an ``.npz`` file of your own, or what torchvision finds on disk."""

from simulate.data.archives import require_file
from simulate.data.images import (
    Images,
    Split,
    arrays,
    digits,
    load_images,
    opened,
    sample,
    torchvision_images,
)

__all__ = [
    "Images",
    "Split",
    "arrays",
    "digits",
    "load_images",
    "opened",
    "require_file",
    "sample",
    "torchvision_images",
]
