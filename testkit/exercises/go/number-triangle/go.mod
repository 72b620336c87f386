module number_triangle

go 1.18
