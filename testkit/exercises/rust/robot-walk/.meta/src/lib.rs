/// A robot on a grid.
pub struct Robot {
    x: i32,
    y: i32,
    direction: usize,
    walls: Vec<(i32, i32)>,
    bumps: usize,
    earlier: Vec<(i32, i32, usize)>,
}

const NAMES: [char; 4] = ['N', 'E', 'S', 'W'];
const STEPS: [(i32, i32); 4] = [(0, 1), (1, 0), (0, -1), (-1, 0)];

impl Robot {
    /// Puts a robot on a field, looking north.
    pub fn new(x: i32, y: i32) -> Self {
        Robot { x, y, direction: 0, walls: Vec::new(), bumps: 0, earlier: Vec::new() }
    }

    /// Puts a wall on a field.
    pub fn wall(&mut self, x: i32, y: i32) {
        self.walls.push((x, y));
    }

    /// Returns how often the robot bumped into a wall.
    pub fn bumps(&self) -> usize {
        self.bumps
    }

    /// Returns position and direction, such as `3 4 N`.
    pub fn place(&self) -> String {
        format!("{} {} {}", self.x, self.y, NAMES[self.direction])
    }

    /// Follows the commands.
    pub fn run(&mut self, commands: &str) -> Result<(), usize> {
        let mut number: Option<(usize, usize)> = None;
        for (position, command) in commands.chars().enumerate() {
            if let Some(digit) = command.to_digit(10) {
                let (start, so_far) = number.unwrap_or((position, 0));
                number = Some((start, so_far * 10 + digit as usize));
                continue;
            }
            if !"FBRLU".contains(command) {
                return Err(position);
            }
            for _ in 0..number.take().map_or(1, |(_, count)| count) {
                self.execute(command);
            }
        }
        number.map_or(Ok(()), |(start, _)| Err(start))
    }

    fn execute(&mut self, command: char) {
        if command == 'U' {
            if let Some((x, y, direction)) = self.earlier.pop() {
                (self.x, self.y, self.direction) = (x, y, direction);
            }
            return;
        }
        self.earlier.push((self.x, self.y, self.direction));
        match command {
            'R' => self.direction = (self.direction + 1) % 4,
            'L' => self.direction = (self.direction + 3) % 4,
            _ => {
                let sign = if command == 'F' { 1 } else { -1 };
                let (x, y) = STEPS[self.direction];
                let to = (self.x + sign * x, self.y + sign * y);
                if self.walls.contains(&to) {
                    self.bumps += 1;
                } else {
                    (self.x, self.y) = to;
                }
            }
        }
    }
}
