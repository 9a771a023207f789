-- The oldest version whose releases can run on the tables as this version leaves them.
ALTER TABLE {migration} ADD COLUMN compatible_from INTEGER;
