//! Tables of web pages: a row of cells is one line, whether the page has it on one line or on several.

/// So many lines of a page are one row at most: a row whose end is missing swallows no more.
const MOST: usize = 64;

/// What a tag makes of the text around it.
#[derive(Clone, Copy, PartialEq)]
enum Tag {
    Row,
    RowEnd,
    Cell,
    Break,
}

/// The tag at the start of `s`, and its length.
fn tag(s: &str) -> Option<(Tag, usize)> {
    if !s.starts_with('<') {
        return None;
    }
    let end = s.bytes().take(200).position(|b| b == b'>')?;
    let name = s[1..end].split([' ', '\t', '/']).find(|n| !n.is_empty())?;
    let ends = s[1..].starts_with('/');
    let kind = match (name.to_ascii_lowercase().as_str(), ends) {
        ("tr", false) => Tag::Row,
        ("tr", true) | ("table", true) => Tag::RowEnd,
        ("td" | "th", _) => Tag::Cell,
        ("br", _) => Tag::Break,
        _ => return None,
    };
    Some((kind, end + 1))
}

/// Lines with their numbers, of which tables and breaks of HTML are made lines of text: "<tr><td>4MiB</td><td>9M/s</td></tr>" is
/// "4MiB\t9M/s". All else stays as it is.
pub fn lines<'a>(raws: &[&'a str]) -> Vec<(usize, std::borrow::Cow<'a, str>)> {
    let mut out = Vec::with_capacity(raws.len());
    // The row that a line above began: its number, its text, the lines it took.
    let mut row: Option<(usize, String, usize)> = None;
    for (i, raw) in raws.iter().enumerate() {
        if row.is_none() && !raw.contains('<') {
            out.push((i + 1, (*raw).into()));
            continue;
        }
        let mut within = row.is_some();
        let (mut number, mut text, taken) = row.take().unwrap_or((i + 1, String::new(), 0));
        // A cell may hold lines of its own: a whole log.
        let cell = tag(raw.trim_start()).is_some_and(|t| matches!(t.0, Tag::Cell | Tag::RowEnd));
        if !cell && !text.ends_with('\t') && !text.is_empty() {
            out.push((number, std::mem::take(&mut text).into()));
            number = i + 1;
        }
        let mut rest = *raw;
        while let Some(at) = rest.find('<') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some((kind, len)) = tag(rest) else {
                text.push('<');
                rest = &rest[1..];
                continue;
            };
            match kind {
                Tag::Cell => text.push('\t'),
                _ => {
                    out.push((number, std::mem::take(&mut text).into()));
                    number = i + 1;
                    within = kind == Tag::Row || within && kind == Tag::Break;
                }
            }
            rest = &rest[len..];
        }
        text.push_str(rest);
        match within && taken < MOST {
            true => row = Some((number, text, taken + 1)),
            false => out.push((number, text.into())),
        }
    }
    out.extend(row.map(|(number, text, _)| (number, text.into())));
    out
}

#[cfg(test)]
mod tests {
    use super::super::read;

    /// However a page lays a table out, its rows are those of the text.
    #[test]
    fn tables_of_pages() {
        let rates =
            |t: &str| read(&[("page", t)]).unwrap().fat.iter().flat_map(|f| f.rows.clone()).map(|r| (r.size, r.rates)).collect::<Vec<_>>();
        let want = rates("4MiB 9.1M/s 8M/s\n2MiB 7M/s 6M/s\n");
        assert_eq!(want.len(), 2);
        for text in [
            "<table><tr><th>size</th></tr>\n<tr><td>4MiB</td><td>9.1M/s</td><td>8M/s</td></tr><tr><td>2MiB<td>7M/s<td>6M/s</table>",
            "<tr>\n<td>4MiB</td>\n<td class=\"x\">9.1M/s</td>\n <td>8M/s</td></tr>\n<TR>\n<TD>2MiB</TD>\n<TD>7M/s\n</TD>\n<TD>6M/s</TD>\n</TR>",
            "<p>4MiB&nbsp;&nbsp;9.1M/s&nbsp;8M/s<br>2MiB&#160;7M/s 6M/s<br/></p>",
        ] {
            assert_eq!(rates(text), want, "{text}");
        }
        // A log in one cell, as forums have it.
        for cell in [
            "<tr><td><pre>\n4MiB 9.1M/s 8M/s\n2MiB 7M/s 6M/s\n</pre></td></tr>",
            "<tr><td>4MiB 9.1M/s 8M/s<br>\n2MiB 7M/s 6M/s<br></td></tr>",
        ] {
            assert_eq!(rates(cell), want, "{cell}");
        }
        let row =
            |a: u64| format!("<tr><td>align {a}</td><td>pre 741&micro;s</td><td>on 1.08ms</td><td>post 788µs</td><td>diff 317µs</td></tr>");
        let t = read(&[("page", (10..20).map(|k| row(1 << k)).collect::<String>())]).unwrap();
        assert_eq!((t.align.len(), t.align[0].rows.len()), (1, 10));
        // What is no tag stays, and a row without an end takes no more than its share of the page.
        let t = read(&[("page", format!("4MiB 9M/s <- slow, a < b\n<tr>\n{}2MiB 8M/s\n1MiB 7M/s\n", "x\n".repeat(70)))]).unwrap();
        assert_eq!(t.open.iter().map(|o| o.rows.len()).sum::<usize>(), 3);
    }
}
