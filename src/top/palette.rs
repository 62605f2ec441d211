//! Colours, and what stands for them where there are none.

use ratatui::style::{Color, Modifier, Style};

/// Shares in eight steps, dark to bright, of the 256 colours that every terminal has; the first is "none at all".
const RAMP: [u8; 9] = [236, 17, 19, 25, 31, 36, 71, 148, 226];

/// The same without colour.
const PLAIN_RAMP: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];

/// How the view is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    has_colour: bool,
}

impl Palette {
    /// Without colour.
    pub fn plain() -> Self {
        Self { has_colour: false }
    }

    /// With colour.
    pub fn coloured() -> Self {
        Self { has_colour: true }
    }

    /// As the environment wants it: <https://no-color.org>, and no colour on a dumb terminal.
    pub(super) fn of_environment() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            has_colour: !is_set("NO_COLOR") && !is_dumb,
        }
    }

    pub(super) fn has_colour(self) -> bool {
        self.has_colour
    }

    fn foreground(self, colour: Color) -> Style {
        if self.has_colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Headings and names.
    pub(super) fn quiet(self) -> Style {
        self.foreground(Color::DarkGray)
    }

    /// Figures that matter.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What a figure of too few requests looks like.
    pub(super) fn doubtful(self) -> Style {
        self.quiet().add_modifier(Modifier::DIM)
    }

    /// Better than before.
    pub(super) fn good(self) -> Style {
        self.foreground(Color::Green)
    }

    /// Worse than before, or broken.
    pub(super) fn bad(self) -> Style {
        self.foreground(Color::Red)
    }

    /// What wants a look.
    pub(super) fn notice(self) -> Style {
        self.foreground(Color::Yellow)
    }

    /// Bars.
    pub(super) fn bar(self) -> Style {
        self.foreground(Color::Cyan)
    }

    /// The selected line.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The colour of a share.
    pub(super) fn shade(self, share: Option<f64>) -> Color {
        match share {
            None => Color::Reset,
            Some(share) => Color::Indexed(RAMP[level(share)]),
        }
    }

    /// The character of a share, where there is no colour.
    pub(super) fn character(share: Option<f64>) -> char {
        share.map_or(' ', |share| PLAIN_RAMP[level(share)])
    }
}

/// Shares are told apart best where most of them are: the root stretches the small ones.
fn level(share: f64) -> usize {
    if share <= 0.0 {
        return 0;
    }
    1 + ((share.min(1.0).sqrt() * 8.0) as usize).min(7)
}
