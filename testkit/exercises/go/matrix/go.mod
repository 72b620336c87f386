module matrix

go 1.18
