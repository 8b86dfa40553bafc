"""Save fitted models as plain JSON, and load them."""

from blockl0.app.model_file import ModelFileError, load_model, save_model

__all__ = ["ModelFileError", "load_model", "save_model"]
