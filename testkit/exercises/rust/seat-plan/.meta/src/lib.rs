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
}

impl Plan {
    pub fn new(seats: usize) -> Self {
        Plan { seats: vec![None; seats] }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.seats.iter().position(|seat| seat.as_deref() == Some(name))
    }

    pub fn book(&mut self, name: &str) -> Result<usize, Refused> {
        if self.find(name).is_some() {
            return Err(Refused::AlreadyBooked);
        }
        let index = self.seats.iter().position(Option::is_none).ok_or(Refused::Full)?;
        self.seats[index] = Some(name.to_string());
        Ok(index + 1)
    }

    pub fn cancel(&mut self, name: &str) -> Result<usize, Refused> {
        let index = self.find(name).ok_or(Refused::NotBooked)?;
        self.seats[index] = None;
        Ok(index + 1)
    }

    pub fn free(&self) -> usize {
        self.seats.iter().filter(|seat| seat.is_none()).count()
    }

    pub fn list(&self) -> Vec<(usize, String)> {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(index, name)| name.clone().map(|name| (index + 1, name))).collect()
    }
}
