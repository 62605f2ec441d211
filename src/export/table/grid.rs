//! Cells and lines of a table as the Python library rich draws them, which is what AIPerf prints with.

/// A number as a cell: two decimals, commas between thousands.
pub(super) fn number(value: f64) -> String {
    let plain = format!("{value:.2}");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.as_str()),
    };
    let Some((whole, decimals)) = digits.split_once('.') else {
        return plain; // not a number, or infinite
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{decimals}")
}

/// Draws the table: heavy head, light body, every cell right-aligned, the title centred above. Every row has as many
/// cells as the header.
pub(super) fn render(title: &str, header: &[&str], rows: &[impl AsRef<[String]>]) -> String {
    let width_of = |text: &str| text.lines().map(|line| line.chars().count()).max();
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            rows.iter()
                .filter_map(|row| width_of(row.as_ref().get(column)?))
                .chain(width_of(heading))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    // Each cell has a blank on both sides, and there is one border more than there are columns.
    let whole = widths.iter().map(|width| width + 2).sum::<usize>() + widths.len() + 1;
    push_line(&mut text, &centred(title, whole));
    push_line(&mut text, &border(&widths, ["┏", "━", "┳", "┓"]));
    push_line(&mut text, &cells(header, &widths, "┃"));
    push_line(&mut text, &border(&widths, ["┡", "━", "╇", "┩"]));
    for row in rows {
        let row = row.as_ref();
        let height = row
            .iter()
            .map(|cell| cell.lines().count())
            .max()
            .unwrap_or(0);
        for line in 0..height {
            let parts: Vec<&str> = row
                .iter()
                .map(|cell| cell.lines().nth(line).unwrap_or(""))
                .collect();
            push_line(&mut text, &cells(&parts, &widths, "│"));
        }
    }
    push_line(&mut text, &border(&widths, ["└", "─", "┴", "┘"]));
    text
}

// rich fills the title's line to the table's width; the odd blank goes to the right.
fn centred(title: &str, width: usize) -> String {
    let spare = width.saturating_sub(title.chars().count());
    let left = spare / 2;
    format!("{}{title}{}", " ".repeat(left), " ".repeat(spare - left))
}

fn border(widths: &[usize], [left, line, cross, right]: [&str; 4]) -> String {
    let parts: Vec<String> = widths.iter().map(|width| line.repeat(width + 2)).collect();
    format!("{left}{}{right}", parts.join(cross))
}

fn cells(parts: &[&str], widths: &[usize], edge: &str) -> String {
    let cells: Vec<String> = parts
        .iter()
        .zip(widths)
        .map(|(part, &width)| format!(" {part:>width$} "))
        .collect();
    format!("{edge}{}{edge}", cells.join(edge))
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
