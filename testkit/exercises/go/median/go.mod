module median

go 1.18
