//! Computer use: which display a model is offered.

use std::path::Path;

use fusee_model::{ComputerDisplay, ComputerTool, Connection, ResolvedModel, Wire};
use fusee_tools::tool::computer::DisplayNumber;

/// Offers a display to the model, if it knows a tool to use it; connects to learn the size, with the cookie in the
/// Xauthority file if there is one.
pub fn offer_display(
    model: &mut ResolvedModel,
    display: DisplayNumber,
    authority: Option<&Path>,
) -> Result<(), String> {
    let Connection { wire, traits, .. } = &mut model.connection;
    if *wire == Wire::Anthropic && traits.computer_tool != ComputerTool::Off {
        let (width, height) = display.size(authority)?;
        traits.display = Some(ComputerDisplay { number: display.number(), width, height });
    }
    Ok(())
}
