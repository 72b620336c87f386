select 1;
++ add it
++ x
end
