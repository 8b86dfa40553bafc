"""The application: the command line, tables, reports and model files, on the public library."""
