"""Images and labels: the embedded digits, or an ``.npz`` file of your own."""

from simulate.data.images import Images, arrays, digits, load_images, opened, require_file, sample

__all__ = ["Images", "arrays", "digits", "load_images", "opened", "require_file", "sample"]
