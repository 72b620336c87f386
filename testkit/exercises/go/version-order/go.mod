module version_order

go 1.18
