module rotate_list

go 1.18
