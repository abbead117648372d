"""Places in config.pbtxt: tokens ─► tree of fields with their offsets ─► the field that an error is about."""
