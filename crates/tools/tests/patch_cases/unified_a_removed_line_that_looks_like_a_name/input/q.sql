select 1;
-- drop it
++ x
end
