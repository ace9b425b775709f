"""From run records to tables and figures; reads records only, never logs."""
