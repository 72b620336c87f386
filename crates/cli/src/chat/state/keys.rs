//! Key bindings of the chat.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fusee::engine::approval::ApprovalAnswer;
use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::rewind::RewindParts;

use super::{AnswerStage, ChatAction, ChatState, OpenQuestion, QuestionSubject};
use crate::chat::commands::{SlashCommand, TurnTarget};
use crate::chat::editor::{CursorMove, Editor};
use crate::chat::history_search::{HistorySearch, SearchOutcome};
use crate::chat::session_picker::{PickerEntry, PickerOutcome, PickerSubject};
use crate::ui::approval_prompt;
use crate::ui::line::Style;

impl ChatState {
    /// Handles a key press.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Duration) -> Vec<ChatAction> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(effects) = self.key_in_list(key) {
            return effects;
        }
        if control && key.code == KeyCode::Char('z') {
            return vec![ChatAction::Suspend];
        }
        if control && key.code == KeyCode::Char('c') {
            self.question = None;
            return self.interrupt(now);
        }
        if self.question.as_ref().is_some_and(|asked| asked.is_seen(now))
            && let Some(asked) = self.question.take()
        {
            return self.answer(asked, key);
        }
        if control { self.control(key.code, now) } else { self.plain(key, now) }
    }

    /// Handles a key while a search or a list is open, which takes them all.
    fn key_in_list(&mut self, key: KeyEvent) -> Option<Vec<ChatAction>> {
        if let Some(search) = &mut self.search {
            match search.key(key, &self.past) {
                SearchOutcome::Open => {}
                SearchOutcome::Cancel => self.search = None,
                SearchOutcome::Accept(message) => {
                    self.search = None;
                    self.editor = Editor::with_text(&message);
                }
            }
            return Some(Vec::new());
        }
        let picker = self.picker.as_mut()?;
        let end = picker.key(key);
        let subject = picker.subject;
        if end != PickerOutcome::Open {
            self.picker = None;
        }
        Some(match end {
            PickerOutcome::Accept(PickerEntry { run, turn, .. }) => {
                vec![ChatAction::Command(match subject {
                    PickerSubject::Conversation => SlashCommand::Resume(Some(run)),
                    PickerSubject::Turn => SlashCommand::Rewind(Some(TurnTarget { run, turn })),
                })]
            }
            PickerOutcome::Open | PickerOutcome::Cancel => Vec::new(),
        })
    }

    /// Handles pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.question {
            Some(OpenQuestion { stage: AnswerStage::Reason(reason), .. }) => reason.insert(text),
            _ => {
                self.editor.insert(text);
                self.update_completions();
            }
        }
    }

    fn plain(&mut self, key: KeyEvent, now: Duration) -> Vec<ChatAction> {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.editor.insert("\n"),
            KeyCode::Enter if self.editor.before().ends_with('\\') => self.editor.replace_before(1, "\n"),
            KeyCode::Enter if self.completion.selected.is_some() => self.complete(),
            KeyCode::Enter => return self.submit(),
            KeyCode::Esc if self.is_working() || self.shell.is_some() => return self.interrupt(now),
            KeyCode::Esc if self.editor.is_empty() && self.free_text.is_none() => return self.go_back(now),
            KeyCode::Esc => {}
            KeyCode::Tab => self.complete(),
            KeyCode::Up if self.completion.step(false) => return Vec::new(),
            KeyCode::Down if self.completion.step(true) => return Vec::new(),
            KeyCode::Up => self.upwards(),
            KeyCode::Down => self.move_down(),
            KeyCode::Char(c) if !alt => self.editor.insert(c.encode_utf8(&mut [0; 4])),
            code => self.edit(code, alt),
        }
        self.update_completions();
        Vec::new()
    }

    fn edit(&mut self, code: KeyCode, words: bool) {
        match (code, words) {
            (KeyCode::Left, false) => self.editor.step(CursorMove::Left),
            (KeyCode::Right, false) => self.editor.step(CursorMove::Right),
            (KeyCode::Left | KeyCode::Char('b'), true) => self.editor.step(CursorMove::WordLeft),
            (KeyCode::Right | KeyCode::Char('f'), true) => self.editor.step(CursorMove::WordRight),
            (KeyCode::Home, _) => self.editor.step(CursorMove::LineStart),
            (KeyCode::End, _) => self.editor.step(CursorMove::LineEnd),
            (KeyCode::Backspace, false) => self.editor.delete(CursorMove::Left),
            (KeyCode::Backspace, true) => self.editor.delete(CursorMove::WordLeft),
            (KeyCode::Delete, _) => self.editor.delete(CursorMove::Right),
            _ => {}
        }
    }

    fn control(&mut self, code: KeyCode, _now: Duration) -> Vec<ChatAction> {
        match code {
            KeyCode::Char('d') if self.editor.is_empty() => return vec![ChatAction::Leave],
            KeyCode::Char('d') => self.editor.delete(CursorMove::Right),
            KeyCode::Char('j') => self.editor.insert("\n"),
            KeyCode::Char('a') => self.editor.step(CursorMove::LineStart),
            KeyCode::Char('e') => self.editor.step(CursorMove::LineEnd),
            KeyCode::Char('u') => self.editor.delete(CursorMove::LineStart),
            KeyCode::Char('k') => self.editor.delete(CursorMove::LineEnd),
            KeyCode::Char('w') | KeyCode::Backspace => self.editor.delete(CursorMove::WordLeft),
            KeyCode::Char('p') => self.upwards(),
            KeyCode::Char('n') => self.move_down(),
            KeyCode::Char('g') => return vec![ChatAction::Edit],
            KeyCode::Char('v') => return vec![ChatAction::PasteImage],
            KeyCode::Char('b') if self.is_working() => return self.move_to_background(),
            KeyCode::Char('r') => {
                self.search = Some(HistorySearch::default());
                return Vec::new();
            }
            KeyCode::Left => self.editor.step(CursorMove::WordLeft),
            KeyCode::Right => self.editor.step(CursorMove::WordRight),
            _ => {}
        }
        self.update_completions();
        Vec::new()
    }

    fn upwards(&mut self) {
        if !self.editor.line(false)
            && let Some(older) = self.past.older(self.editor.text())
        {
            self.editor = Editor::with_text(older);
        }
    }

    fn move_down(&mut self) {
        if !self.editor.line(true)
            && let Some(newer) = self.past.newer()
        {
            self.editor = Editor::with_text(&newer);
        }
    }

    fn complete(&mut self) {
        if let Some(current) = self.completion.current() {
            self.editor.replace_before(self.completion.replaces, current);
        }
    }

    /// Handles a key while a question is open.
    fn answer(&mut self, mut asked: OpenQuestion, key: KeyEvent) -> Vec<ChatAction> {
        let size = self.size;
        if matches!(asked.stage, AnswerStage::Choosing) {
            let page = asked.window(size).rows.len().max(1).cast_signed();
            let by = match key.code {
                KeyCode::Down => 1,
                KeyCode::Up => -1,
                KeyCode::PageDown | KeyCode::Char(' ') => page,
                KeyCode::PageUp => -page,
                _ => 0,
            };
            let is_rewind = matches!(asked.subject, QuestionSubject::Rewind(_));
            let allows = matches!(key.code, KeyCode::Char('y' | 's' | 'a'))
                || (is_rewind && matches!(key.code, KeyCode::Char('b' | 'f' | 'c')));
            asked.scroll(by, size);
            if by != 0 || (allows && !asked.is_read(size)) {
                self.question = Some(asked);
                return Vec::new();
            }
        }
        let effects = match (&mut asked.stage, &asked.subject, key.code) {
            (AnswerStage::Choosing, QuestionSubject::Return(run), KeyCode::Char('y')) => {
                Some(vec![ChatAction::Command(SlashCommand::Resume(Some(run.clone())))])
            }
            (AnswerStage::Choosing, QuestionSubject::Return(_), KeyCode::Char('n') | KeyCode::Esc) => {
                self.notify(Style::Dim, "not resumed; /resume continues it");
                Some(Vec::new())
            }
            (AnswerStage::Choosing, QuestionSubject::Undo(run), KeyCode::Char('y')) => {
                Some(vec![ChatAction::Command(SlashCommand::UndoNow(run.clone()))])
            }
            (AnswerStage::Choosing, QuestionSubject::Undo(_), KeyCode::Char('n') | KeyCode::Esc) => {
                self.notify(Style::Dim, "nothing was undone");
                Some(Vec::new())
            }
            (
                AnswerStage::Choosing,
                QuestionSubject::Rewind(to),
                KeyCode::Char(letter @ ('b' | 'f' | 'c')),
            ) => {
                let parts = RewindParts { files: letter != 'c', conversation: letter != 'f' };
                Some(vec![ChatAction::Rewind(to.clone(), parts)])
            }
            (AnswerStage::Choosing, QuestionSubject::Rewind(_), KeyCode::Char('n') | KeyCode::Esc) => {
                self.notify(Style::Dim, "nothing was rewound");
                Some(Vec::new())
            }
            (AnswerStage::Choosing, QuestionSubject::Plan, KeyCode::Char('y')) => {
                Some(vec![ChatAction::CarryOutPlan])
            }
            (AnswerStage::Choosing, QuestionSubject::Plan, KeyCode::Char('n') | KeyCode::Esc) => {
                self.notify(Style::Dim, "still planning; /plan off ends plan mode");
                Some(Vec::new())
            }
            (AnswerStage::Choosing, QuestionSubject::Call(_), KeyCode::Char('y')) => {
                Some(self.allow("allowed once"))
            }
            (AnswerStage::Choosing, QuestionSubject::Call(question), KeyCode::Char('s')) => {
                let scope = self.keep(&question.lasting(asked.extent));
                Some(self.allow(&format!("allowed in this conversation: {scope}")))
            }
            (AnswerStage::Choosing, QuestionSubject::Call(question), KeyCode::Char('a')) => {
                let rules = question.lasting(asked.extent);
                let scope = self.keep(&rules);
                let said = format!("always allowed in this project: {scope}; `fusee approvals` revokes it");
                Some([vec![ChatAction::SaveRules(rules)], self.allow(&said)].concat())
            }
            (AnswerStage::Choosing, QuestionSubject::Call(_), KeyCode::Char('w')) => {
                asked.toggle_extent();
                None
            }
            (AnswerStage::Choosing, QuestionSubject::Call(_), KeyCode::Esc) => Some(self.refuse("")),
            (AnswerStage::Choosing, QuestionSubject::Call(_), KeyCode::Char('n')) => {
                asked.stage = AnswerStage::Reason(Editor::default());
                None
            }
            (AnswerStage::Choosing, ..) => None,
            (AnswerStage::Reason(reason), _, KeyCode::Enter) => {
                let reason = reason.take();
                Some(self.refuse(reason.trim()))
            }
            (AnswerStage::Reason(_), _, KeyCode::Esc) => {
                asked.stage = AnswerStage::Choosing;
                None
            }
            (AnswerStage::Reason(reason), _, code) => {
                match code {
                    KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                        reason.insert(c.encode_utf8(&mut [0; 4]));
                    }
                    KeyCode::Backspace => reason.delete(CursorMove::Left),
                    KeyCode::Left => reason.step(CursorMove::Left),
                    KeyCode::Right => reason.step(CursorMove::Right),
                    _ => {}
                }
                None
            }
        };
        if effects.is_none() {
            self.question = Some(asked);
        }
        effects.unwrap_or_default()
    }

    /// Remembers approvals for the rest of the chat; returns what they cover.
    fn keep(&mut self, rules: &[ApprovalRule]) -> String {
        rules.iter().for_each(|rule| self.allowed.add(rule.clone()));
        rules.iter().map(approval_prompt::describe).collect::<Vec<_>>().join("; ")
    }

    fn allow(&mut self, words: &str) -> Vec<ChatAction> {
        self.notify(Style::Dim, &format!("  {words}"));
        vec![ChatAction::Answer(ApprovalAnswer::yes())]
    }

    fn refuse(&mut self, why: &str) -> Vec<ChatAction> {
        let reason =
            if why.is_empty() { "the user said no".to_owned() } else { format!("the user said no: {why}") };
        self.notify(Style::Dim, &format!("  denied{}{why}", if why.is_empty() { "" } else { ": " }));
        vec![ChatAction::Answer(ApprovalAnswer::no(reason))]
    }
}
