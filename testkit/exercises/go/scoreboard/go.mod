module scoreboard

go 1.18
