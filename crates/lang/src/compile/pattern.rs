//! Compiling patterns of `match`.

use fusee_text::sexpr::{NodeId, NodeKind};

use super::compiler::Compiler;
use crate::bytecode::PatternPart;
use crate::value::Text;

/// The names bound by a pattern, in the order its parts are matched.
pub(super) type BoundNames<'t> = Vec<(&'t str, NodeId)>;

impl<'t> Compiler<'t> {
    /// The parts of a pattern and the names it binds. Malformed parts are reported and match anything.
    pub(super) fn pattern(&mut self, root: NodeId) -> (Vec<PatternPart>, BoundNames<'t>) {
        let mut parts = vec![PatternPart::Any];
        let mut names: BoundNames<'t> = Vec::new();
        let mut open = vec![(root, 0_usize)];
        while let Some((node, at)) = open.pop() {
            let part = self.part(node, &mut parts, &mut names, &mut open);
            parts[at] = part;
        }
        // Names are bound in the order of the parts, which differs from source order in nested patterns.
        (parts, names)
    }

    fn part(
        &mut self,
        node: NodeId,
        parts: &mut Vec<PatternPart>,
        names: &mut BoundNames<'t>,
        open: &mut Vec<(NodeId, usize)>,
    ) -> PatternPart {
        let tree = self.tree();
        match tree.kind(node) {
            NodeKind::Symbol => match tree.text(node) {
                "_" | "else" => PatternPart::Any,
                name => self.name_part(name, node, names),
            },
            NodeKind::Quote => match tree.items(node) {
                [quoted] => PatternPart::Literal(self.data(*quoted)),
                _ => PatternPart::Any,
            },
            NodeKind::List => self.list_part(node, parts, open),
            _ => PatternPart::Literal(self.data(node)),
        }
    }

    fn name_part(&mut self, name: &'t str, node: NodeId, names: &mut BoundNames<'t>) -> PatternPart {
        if names.iter().any(|(known, _)| *known == name) {
            self.error("duplicate-definition", node, format!("`{name}` is bound twice in this pattern"));
        }
        names.push((name, node));
        PatternPart::Name
    }

    fn list_part(
        &mut self,
        node: NodeId,
        parts: &mut Vec<PatternPart>,
        open: &mut Vec<(NodeId, usize)>,
    ) -> PatternPart {
        let tree = self.tree();
        let help = "valid patterns are 'symbol, a literal, a name, (tag pattern …), (list pattern …), (dict \"key\" pattern …)";
        let Some(head) = tree.head(node) else {
            self.error_with("malformed-pattern", node, "not a valid pattern", Some(help.to_owned()));
            return PatternPart::Any;
        };
        let items = self.arguments(node);
        if head == "quote" {
            return items.first().map_or(PatternPart::Any, |quoted| PatternPart::Literal(self.data(*quoted)));
        }
        let mut add = |node: NodeId| {
            parts.push(PatternPart::Any);
            open.push((node, parts.len() - 1));
            parts.len() as u32 - 1
        };
        if head == "dict" {
            let mut entries = Vec::new();
            for pair in items.chunks(2) {
                match pair {
                    [key, value]
                        if matches!(
                            tree.kind(*key),
                            NodeKind::String | NodeKind::Keyword | NodeKind::Symbol
                        ) =>
                    {
                        entries.push((Text::from(tree.text(*key)), add(*value)));
                    }
                    _ => {
                        self.error_with(
                            "malformed-pattern",
                            node,
                            "a map pattern takes pairs of a key and a pattern",
                            Some(help.to_owned()),
                        );
                        return PatternPart::Any;
                    }
                }
            }
            return PatternPart::Map(entries);
        }
        let (items, rest) = match items {
            [items @ .., ampersand, rest] if tree.symbol(*ampersand) == Some("&") => (items, Some(*rest)),
            items => (items, None),
        };
        let mut indices: Vec<u32> = items.iter().map(|item| add(*item)).collect();
        indices.extend(rest.map(&mut add));
        match head {
            "list" => PatternPart::List { items: indices, rest: rest.is_some() },
            tag => PatternPart::Tag { tag: Text::from(tag), items: indices, rest: rest.is_some() },
        }
    }
}
