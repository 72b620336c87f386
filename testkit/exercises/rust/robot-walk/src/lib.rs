/// A robot on a grid.
pub struct Robot {
    x: i32,
    y: i32,
    direction: usize,
}

const NAMES: [char; 4] = ['N', 'E', 'S', 'W'];
const STEPS: [(i32, i32); 4] = [(0, 1), (1, 0), (0, -1), (-1, 0)];

impl Robot {
    /// Puts a robot on a field, looking north.
    pub fn new(x: i32, y: i32) -> Self {
        Robot { x, y, direction: 0 }
    }

    /// Returns position and direction, such as `3 4 N`.
    pub fn place(&self) -> String {
        format!("{} {} {}", self.x, self.y, NAMES[self.direction])
    }

    /// Follows the commands.
    pub fn run(&mut self, commands: &str) -> Result<(), usize> {
        for (position, command) in commands.chars().enumerate() {
            match command {
                'F' => {
                    let (x, y) = STEPS[self.direction];
                    self.x += x;
                    self.y += y;
                }
                'R' => self.direction = (self.direction + 1) % 4,
                'L' => self.direction = (self.direction + 3) % 4,
                _ => return Err(position),
            }
        }
        Ok(())
    }
}
