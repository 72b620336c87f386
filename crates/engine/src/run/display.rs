//! Computer use: which display a model is offered.

use fusee_model::{ComputerDisplay, ComputerTool, Connection, ResolvedModel, Wire};
use fusee_tools::tool::computer::DisplayNumber;

/// Offers a display to the model, if it knows a tool to use it; connects to learn the size.
pub fn offer_display(model: &mut ResolvedModel, display: DisplayNumber) -> Result<(), String> {
    let Connection { wire, traits, .. } = &mut model.connection;
    if *wire == Wire::Anthropic && traits.computer_tool != ComputerTool::Off {
        let (width, height) = display.size()?;
        traits.display = Some(ComputerDisplay { number: display.number(), width, height });
    }
    Ok(())
}
