//! What a terminal can show, judging by the environment variables it sets.

use ratatui::style::Color;

/// A way in which terminals take pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphicsProtocol {
    /// Two colours in each cell, with the half blocks of Unicode: every terminal with colours.
    #[default]
    Blocks,
    /// The graphics protocol of kitty, placed by Unicode characters: kitty and Ghostty.
    Kitty,
    /// Inline images of iTerm2 (OSC 1337): iTerm2 and `WezTerm`.
    Iterm2,
    /// Sixel graphics of DEC: foot, mlterm, Contour.
    Sixel,
}

/// What is known of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalGraphics {
    /// The best way in which it is known to take pictures.
    pub protocol: GraphicsProtocol,
    /// Whether it knows 16 million colours; 256 otherwise.
    pub has_true_colour: bool,
}

impl TerminalGraphics {
    /// Reads what a terminal tells about itself. Inside of tmux, screen and Zellij pictures are cells,
    /// because these pass nothing else on unless configured to.
    pub fn detect(variable: &dyn Fn(&'static str) -> Option<String>) -> Self {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let value = |name| variable(name).unwrap_or_default();
        let (term, program) = (value("TERM"), value("TERM_PROGRAM"));
        let begins = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
        let is_shared =
            is_set("TMUX") || is_set("STY") || is_set("ZELLIJ") || begins(&["tmux", "screen"]);
        let protocol = if is_shared {
            GraphicsProtocol::Blocks
        } else if begins(&["xterm-kitty", "xterm-ghostty"]) || program == "ghostty" {
            GraphicsProtocol::Kitty
        } else if ["iTerm.app", "WezTerm"].contains(&program.as_str())
            || value("LC_TERMINAL") == "iTerm2"
        {
            GraphicsProtocol::Iterm2
        } else if begins(&["foot", "mlterm", "contour"]) {
            GraphicsProtocol::Sixel
        } else {
            GraphicsProtocol::Blocks
        };
        let has_true_colour = ["truecolor", "24bit"].contains(&value("COLORTERM").as_str())
            || term.ends_with("-direct")
            || protocol != GraphicsProtocol::Blocks;
        Self { protocol, has_true_colour }
    }

    /// The colour of a cell that comes nearest.
    pub fn colour(self, [red, green, blue]: [u8; 3]) -> Color {
        if self.has_true_colour {
            return Color::Rgb(red, green, blue);
        }
        // The cube of 6 by 6 by 6 colours: 0, 95, 135, 175, 215, 255.
        let level = |part: u8| match part {
            0..48 => 0,
            48..115 => 1,
            _ => (part - 35) / 40,
        };
        Color::Indexed(16 + 36 * level(red) + 6 * level(green) + level(blue))
    }
}
