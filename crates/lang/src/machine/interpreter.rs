//! The instruction loop. Infrequent instructions are in [`super::cold_ops`].

use super::{CodeFrame, ControlFlow, Frame, HandlerKind, Machine};
use crate::builtin::{Run, arithmetic, compare};
use crate::bytecode::{Binary, Function, Op};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::Value;

/// Unwraps a result; on an error, saves the frame first so that the error gets the right location.
macro_rules! attempt {
    ($machine:ident, $frame:ident, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(problem) => {
                $machine.save($frame);
                return Err(problem);
            }
        }
    };
}

impl Machine {
    /// Runs the top frame and the functions it calls until the machine must do something else.
    pub(super) fn run_code(&mut self, mut frame: CodeFrame) -> Result<ControlFlow, UnlocatedError> {
        let program = self.program.clone();
        let mut function = &program.functions[frame.function as usize];
        loop {
            let op = function.code[frame.next as usize];
            frame.next += 1;
            match op {
                Op::Const(index) => self.stack.push(program.constants[index as usize].clone()),
                Op::Int(int) => self.stack.push(Value::Int(i64::from(int))),
                Op::Nil => self.stack.push(Value::Nil),
                Op::True => self.stack.push(Value::Bool(true)),
                Op::False => self.stack.push(Value::Bool(false)),
                Op::Unset => self.stack.push(Value::UNSET),
                Op::Local(slot) => {
                    let value = self.local(frame, slot).clone();
                    self.stack.push(value);
                }
                Op::BinaryLocalInt { binary, local, int } => {
                    let value = &self.stack[(frame.base + u32::from(local)) as usize];
                    let int = i64::from(int);
                    let fast =
                        if let Value::Int(one) = value { on_integers(binary, *one, int) } else { None };
                    match fast {
                        Some(IntegerResult::Int(value)) => self.stack.push(Value::Int(value)),
                        Some(IntegerResult::Bool(holds)) => match function.code[frame.next as usize] {
                            // A comparison is usually followed by its jump, which then needs no value on the
                            // stack.
                            Op::JumpIfFalse(target) => {
                                frame.next = if holds { frame.next + 1 } else { target }
                            }
                            _ => self.stack.push(Value::Bool(holds)),
                        },
                        None => {
                            let value = apply(&mut self.fuel, binary, value, &Value::Int(int));
                            let value = attempt!(self, frame, value);
                            self.stack.push(value);
                        }
                    }
                }
                Op::Binary(binary) => {
                    let height = self.stack.len();
                    let fast = match (&self.stack[height - 2], &self.stack[height - 1]) {
                        (Value::Int(one), Value::Int(two)) => on_integers(binary, *one, *two),
                        _ => None,
                    };
                    match fast {
                        Some(IntegerResult::Int(value)) => {
                            self.stack.pop();
                            if let Some(Value::Int(top)) = self.stack.last_mut() {
                                *top = value;
                            }
                        }
                        Some(IntegerResult::Bool(holds)) => {
                            self.stack.truncate(height - 2);
                            match function.code[frame.next as usize] {
                                Op::JumpIfFalse(target) => {
                                    frame.next = if holds { frame.next + 1 } else { target }
                                }
                                _ => self.stack.push(Value::Bool(holds)),
                            }
                        }
                        None => {
                            let (one, two) = (&self.stack[height - 2], &self.stack[height - 1]);
                            let value = attempt!(self, frame, apply(&mut self.fuel, binary, one, two));
                            self.stack.pop();
                            self.stack[height - 2] = value;
                        }
                    }
                }
                Op::Pop => {
                    self.stack.pop();
                }
                Op::Jump(target) => frame.next = target,
                Op::JumpIfFalse(target) => {
                    if !self.pop().is_true() {
                        frame.next = target;
                    }
                }
                Op::JumpIfFalseOrPop(target) => {
                    if self.top().is_true() {
                        self.stack.pop();
                    } else {
                        frame.next = target;
                    }
                }
                Op::JumpIfTrueOrPop(target) => {
                    if self.top().is_true() {
                        frame.next = target;
                    } else {
                        self.stack.pop();
                    }
                }
                Op::Return => {
                    let value = self.pop();
                    self.stack.truncate(frame.floor as usize);
                    self.stack.push(value);
                    self.frames.pop();
                    let Some(Frame::Code(caller)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                    frame = *caller;
                    function = &program.functions[frame.function as usize];
                }
                Op::CallGlobal { arguments, global } => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    let count = usize::from(arguments);
                    let base = self.stack.len() - count;
                    self.save(frame);
                    match self.plain_global(global) {
                        Some(code) => self.enter(code, count, base, base)?,
                        None => {
                            let callee = self.global(global)?;
                            self.stack.insert(base, callee);
                            if let ControlFlow::Yield(found) = self.invoke(count)? {
                                return Ok(ControlFlow::Yield(found));
                            }
                        }
                    }
                    let Some(Frame::Code(top)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                    frame = *top;
                    function = &program.functions[frame.function as usize];
                }
                Op::TailCallGlobal { arguments, global } => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    let count = usize::from(arguments);
                    let base = self.stack.len() - count;
                    let Some(code) = self.plain_global(global) else {
                        let callee = attempt!(self, frame, self.global(global));
                        self.stack.insert(base, callee);
                        self.save(frame);
                        if let ControlFlow::Yield(found) = self.tail_call(frame, count)? {
                            return Ok(ControlFlow::Yield(found));
                        }
                        let Some(Frame::Code(top)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                        frame = *top;
                        function = &program.functions[frame.function as usize];
                        continue;
                    };
                    let callee = &program.functions[code as usize];
                    if callee.params as usize != count {
                        self.save(frame);
                        return Err(arity_problem(callee, count));
                    }
                    self.stack.drain(frame.floor as usize..base);
                    frame = CodeFrame { function: code, next: 0, base: frame.floor, floor: frame.floor };
                    function = callee;
                }
                Op::Call(count) => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    self.save(frame);
                    if let ControlFlow::Yield(found) = self.invoke(count as usize)? {
                        return Ok(ControlFlow::Yield(found));
                    }
                    let Some(Frame::Code(top)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                    frame = *top;
                    function = &program.functions[frame.function as usize];
                }
                Op::TailCall(count) => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    self.save(frame);
                    if let ControlFlow::Yield(found) = self.tail_call(frame, count as usize)? {
                        return Ok(ControlFlow::Yield(found));
                    }
                    let Some(Frame::Code(top)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                    frame = *top;
                    function = &program.functions[frame.function as usize];
                }
                Op::CallBuiltin { builtin, arguments } => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    let builtin = program.builtins[builtin as usize];
                    let count = arguments as usize;
                    let floor = self.stack.len() - count;
                    if !matches!(builtin.run, Run::Pure(_)) {
                        self.save(frame);
                        return self.run_builtin(builtin, count, floor);
                    }
                    attempt!(self, frame, self.run_builtin(builtin, count, floor));
                }
                Op::Again(target) => {
                    if self.fuel.left == 0 {
                        return self.out_of_slice(frame);
                    }
                    self.fuel.left -= 1;
                    frame.next = target;
                }
                Op::LoopNext(target) => {
                    let count = self.stack.len() - 2;
                    match &mut self.stack[count] {
                        Value::Int(left) if *left > 0 => {
                            *left -= 1;
                            self.stack.pop();
                        }
                        _ => frame.next = target,
                    }
                }
                Op::Slide(slots) => {
                    let value = self.pop();
                    let height = self.stack.len() - slots as usize;
                    self.stack.truncate(height);
                    self.stack.push(value);
                }
                Op::Captured(index) => {
                    let value = self.captured(frame, index).clone();
                    self.stack.push(value);
                }
                Op::Global(index) => {
                    let value = attempt!(self, frame, self.global(index));
                    self.stack.push(value);
                }
                Op::PushCatch(target) => self.push_handler(HandlerKind::Catch { target }),
                Op::PushFinally(target) => self.push_handler(HandlerKind::Finally { target }),
                Op::PopHandler => {
                    self.handlers.pop();
                }
                rare => {
                    self.save(frame);
                    if let Some(flow) = self.execute_cold(rare, frame)? {
                        return Ok(flow);
                    }
                    let Some(Frame::Code(top)) = self.frames.last() else { return Ok(ControlFlow::Go) };
                    frame = *top;
                }
            }
        }
    }

    fn save(&mut self, frame: CodeFrame) {
        if let Some(Frame::Code(top)) = self.frames.last_mut() {
            *top = frame;
        }
    }

    /// Pauses before the current instruction.
    #[cold]
    fn out_of_slice(&mut self, frame: CodeFrame) -> Result<ControlFlow, UnlocatedError> {
        self.save(frame);
        let pause = self.look_up()?;
        self.save(CodeFrame { next: frame.next - 1, ..frame });
        Ok(pause.map_or(ControlFlow::Go, ControlFlow::Yield))
    }

    fn tail_call(&mut self, frame: CodeFrame, count: usize) -> Result<ControlFlow, UnlocatedError> {
        let base = self.stack.len() - count;
        let Some(Value::Function(closure)) = self.stack.get(base - 1) else {
            // A library function is called normally; the next instruction returns its value.
            return self.invoke(count);
        };
        let code = closure.code;
        let callee = &self.program.functions[code as usize];
        if callee.params as usize != count {
            return Err(arity_problem(callee, count));
        }
        self.stack.drain(frame.floor as usize..base - 1);
        self.save(CodeFrame { function: code, next: 0, base: frame.floor + 1, floor: frame.floor });
        Ok(ControlFlow::Go)
    }

    /// The code of a global function that never refers to itself, so it need not be pushed onto the stack.
    fn plain_global(&self, index: u32) -> Option<u32> {
        match &self.globals[index as usize] {
            Value::Function(closure) if closure.plain => Some(closure.code),
            _ => None,
        }
    }

    fn global(&self, index: u32) -> Result<Value, UnlocatedError> {
        match &self.globals[index as usize] {
            Value::Slot(_) => {
                let name = &self.program.globals[index as usize];
                Err(UnlocatedError::new("unbound", format!("`{name}` is used before it is bound")))
            }
            value => Ok(value.clone()),
        }
    }

    pub(super) fn local(&self, frame: CodeFrame, slot: u32) -> &Value {
        &self.stack[(frame.base + slot) as usize]
    }

    pub(super) fn captured(&self, frame: CodeFrame, index: u32) -> &Value {
        match &self.stack[frame.base as usize - 1] {
            Value::Function(closure) => &closure.captured[index as usize],
            other => other,
        }
    }

    pub(super) fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    pub(super) fn top(&self) -> &Value {
        self.stack.last().unwrap_or(&Value::Nil)
    }
}

/// Result of an operation on two integers.
enum IntegerResult {
    Int(i64),
    Bool(bool),
}

/// Arithmetic and comparison of two integers; `None` on overflow.
#[inline(always)]
fn on_integers(binary: Binary, one: i64, two: i64) -> Option<IntegerResult> {
    match binary {
        Binary::Add => one.checked_add(two).map(IntegerResult::Int),
        Binary::Subtract => one.checked_sub(two).map(IntegerResult::Int),
        Binary::Multiply => one.checked_mul(two).map(IntegerResult::Int),
        Binary::Less => Some(IntegerResult::Bool(one < two)),
        Binary::LessOrEqual => Some(IntegerResult::Bool(one <= two)),
        Binary::Greater => Some(IntegerResult::Bool(one > two)),
        Binary::GreaterOrEqual => Some(IntegerResult::Bool(one >= two)),
        Binary::Equal => Some(IntegerResult::Bool(one == two)),
    }
}

/// Arithmetic and comparison of two values of any kind.
#[inline(never)]
fn apply(fuel: &mut Fuel, binary: Binary, one: &Value, two: &Value) -> Result<Value, UnlocatedError> {
    match binary {
        Binary::Add => arithmetic::add(one, two),
        Binary::Subtract => arithmetic::subtract(one, two),
        Binary::Multiply => arithmetic::multiply(one, two),
        Binary::Less => compare::ordered_pair("<", one, two, std::cmp::Ordering::is_lt).map(Value::Bool),
        Binary::LessOrEqual => {
            compare::ordered_pair("<=", one, two, std::cmp::Ordering::is_le).map(Value::Bool)
        }
        Binary::Greater => compare::ordered_pair(">", one, two, std::cmp::Ordering::is_gt).map(Value::Bool),
        Binary::GreaterOrEqual => {
            compare::ordered_pair(">=", one, two, std::cmp::Ordering::is_ge).map(Value::Bool)
        }
        Binary::Equal => compare::equal(fuel, one, two).map(Value::Bool),
    }
}

fn arity_problem(function: &Function, count: usize) -> UnlocatedError {
    let message = format!("`{}` takes {}, not {count}", function.name, function.arity());
    UnlocatedError::new("wrong-arity", message)
}
