"""What the files of this benchmark share."""
