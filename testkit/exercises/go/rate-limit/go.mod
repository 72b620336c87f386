module rate_limit

go 1.18
