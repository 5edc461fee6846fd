"""The comparison that ``caref quickstart`` makes: as plain data, and in words."""
