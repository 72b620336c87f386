module card_number

go 1.18
