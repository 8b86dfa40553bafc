"""X on a card, beside the processor."""
