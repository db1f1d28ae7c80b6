from hypothesis import settings

# A deadline measures the machine, not the code; and the same commit tries the same examples everywhere.
settings.register_profile("stopgap", deadline=None, derandomize=True)
settings.load_profile("stopgap")
