//! What the keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use strum::VariantArray;

use super::filter::Filter;
use super::model::{Grouping, Model, Order, Screen};
use crate::stats::Window;
use clap::ValueEnum;

/// The keys, and what each does.
pub(super) const KEYS: [(&str, &str); 12] = [
    (
        "/",
        "filter: model=NAME tag=NAME engine=NAME, or words of a request",
    ),
    ("s", "sort requests: newest, length, latency, steps"),
    ("g", "group by tag, model, engine, or the next facet"),
    ("+ -", "longer or shorter window: 1m, 5m, 15m, 1h, all"),
    ("↑ ↓ j k", "select a request; PgUp PgDn by ten, Home, End"),
    ("Enter", "all of the selected request"),
    (
        "d",
        "mark the figures of now and show how far they move; again: no mark",
    ),
    ("p", "pause"),
    ("r", "ask again now"),
    ("?", "this help"),
    ("Esc", "back; takes the filter away"),
    ("q", "quit"),
];

const PAGE: isize = 10;

/// What a key asks of the program around the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Draw again.
    None,
    /// The question to the taps has changed.
    Ask,
    /// The end.
    Quit,
}

impl Model {
    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Effect::Quit,
                _ => Effect::None,
            };
        }
        if let Some((text, _)) = self.editing.take() {
            return self.edit(text, key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?') | KeyCode::Char('h') => {
                self.screen = match self.screen {
                    Screen::Help => Screen::Overview,
                    _ => Screen::Help,
                };
            }
            KeyCode::Esc if self.screen != Screen::Overview => self.screen = Screen::Overview,
            KeyCode::Esc if !self.filter.text.is_empty() => {
                self.filter = Filter::default();
                return Effect::Ask;
            }
            KeyCode::Enter => {
                self.screen = match self.screen {
                    Screen::Overview if self.wanted().next().is_some() => Screen::Detail(0),
                    _ => Screen::Overview,
                };
            }
            KeyCode::Char('/') => {
                self.screen = Screen::Overview;
                self.editing = Some((self.filter.text.clone(), None));
            }
            KeyCode::Char('s') => self.order = next(Order::VARIANTS, self.order),
            KeyCode::Char('g') => {
                self.grouping = next(Grouping::value_variants(), self.grouping);
                // The marked figures are of other groups.
                return Effect::Ask;
            }
            KeyCode::Char('+' | '=') => return self.widen(1),
            KeyCode::Char('-') => return self.widen(-1),
            KeyCode::Char('p') => {
                self.is_paused = !self.is_paused;
                return Effect::Ask;
            }
            KeyCode::Char('r') => return Effect::Ask,
            KeyCode::Char('d') if self.mark.is_some() => self.mark = None,
            KeyCode::Char('d') => self.set_mark(),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::PageDown => self.go(PAGE),
            KeyCode::PageUp => self.go(-PAGE),
            KeyCode::Home => self.go(isize::MIN),
            KeyCode::End => self.go(isize::MAX),
            _ => {}
        }
        Effect::None
    }

    fn edit(&mut self, mut text: String, key: KeyCode) -> Effect {
        match key {
            KeyCode::Esc => return Effect::None,
            KeyCode::Enter => match Filter::read(&text) {
                Ok(filter) => {
                    self.filter = filter;
                    return Effect::Ask;
                }
                Err(error) => self.editing = Some((text, Some(error.to_string()))),
            },
            KeyCode::Backspace => {
                text.pop();
                self.editing = Some((text, None));
            }
            KeyCode::Char(character) => {
                text.push(character);
                self.editing = Some((text, None));
            }
            _ => self.editing = Some((text, None)),
        }
        Effect::None
    }

    fn widen(&mut self, by: isize) -> Effect {
        let windows = Window::VARIANTS;
        let now = windows.iter().position(|window| *window == self.window);
        let then = now.unwrap_or(0).saturating_add_signed(by);
        match windows.get(then) {
            Some(&window) if window != self.window => {
                self.window = window;
                Effect::Ask
            }
            _ => Effect::None,
        }
    }

    /// Selects another request, or scrolls the one that is open.
    fn go(&mut self, by: isize) {
        match &mut self.screen {
            Screen::Detail(scrolled) => {
                let by = i16::try_from(by).unwrap_or(if by < 0 { i16::MIN } else { i16::MAX });
                *scrolled = scrolled.saturating_add_signed(by);
            }
            Screen::Help => {}
            Screen::Overview => {
                let requests = self.requests();
                let to = self.position(&requests).saturating_add_signed(by);
                let to = requests.get(to).or(requests.last());
                // The first one stays the first one while new ones come.
                let is_first = to.is_some_and(|it| it.id == requests[0].id);
                self.selected = to.filter(|_| !is_first).map(|it| it.id.clone());
            }
        }
    }
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let mut rest = all.iter().skip_while(|it| **it != now).skip(1);
    rest.next().or(all.first()).copied().unwrap_or(now)
}
