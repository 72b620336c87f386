/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    Full,
    AlreadyBooked,
    NotBooked,
}

/// A plan of seats.
pub struct Plan {
    seats: Vec<Option<String>>,
    next: usize,
}

impl Plan {
    pub fn new(seats: usize) -> Self {
        Plan { seats: vec![None; seats], next: 0 }
    }

    pub fn book(&mut self, name: &str) -> Result<usize, Refused> {
        if self.next >= self.seats.len() {
            return Err(Refused::Full);
        }
        self.seats[self.next] = Some(name.to_string());
        self.next += 1;
        Ok(self.next)
    }

    pub fn cancel(&mut self, name: &str) -> Result<usize, Refused> {
        let index = self.seats.iter().position(|seat| seat.as_deref() == Some(name)).unwrap();
        self.seats[index] = None;
        Ok(index)
    }

    pub fn free(&self) -> usize {
        self.seats.len() - self.next
    }

    pub fn list(&self) -> Vec<(usize, String)> {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(index, name)| name.clone().map(|name| (index, name))).collect()
    }
}
