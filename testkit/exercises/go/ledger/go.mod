module ledger

go 1.18
