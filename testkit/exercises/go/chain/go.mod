module chain

go 1.18
