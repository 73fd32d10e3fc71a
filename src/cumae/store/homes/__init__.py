"""Where oracles live: in one SQLite file each, or in a PostgreSQL database for several replicas."""
