//! What lies on a FAT or exFAT volume: its directories, its files cluster by cluster, its free clusters; and whether it
//! contradicts itself.

use crate::{FatType, Volume};

/// One file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Path from the root, parts separated by `/`.
    pub path: String,
    /// It is a directory.
    pub directory: bool,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// Its clusters in order; none for an empty file.
    pub chain: Vec<u32>,
    /// Where its 32-byte directory entry lies, in bytes from the start of the volume; none for the root directory.
    pub entry: Option<u64>,
}

/// All that is on a volume.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Where the parts of the volume lie.
    pub volume: Volume,
    /// The first table, one number a cluster, 28 bits of FAT32; entries 0 and 1 are not clusters. For exFAT, whose files may lie
    /// in one piece without a chain and whose free clusters stand in a bitmap, what such a table would say.
    pub table: Vec<u32>,
    /// Files and directories; the root directory is the first where it is a chain.
    pub nodes: Vec<Node>,
    /// Clusters marked as used that belong to nothing.
    pub lost: u32,
    /// The copies of the table are not alike.
    pub copies_differ: bool,
}

/// Why a tree could not be read.
#[derive(Debug)]
pub enum TreeError<E> {
    /// Reading failed.
    Read(E),
    /// The volume contradicts itself; the text says where.
    Damaged(String),
}

/// What the number of a cluster in the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is free.
    Free,
    /// The chain goes on there.
    Next(u32),
    /// The chain ends.
    End,
    /// The cluster is bad.
    Bad,
}

/// A directory: each piece with its place on the volume.
type Parts = Vec<(u64, Vec<u8>)>;

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
/// Deeper trees are taken for damage.
const DEEPEST: usize = 64;
/// Bytes of one directory: 65536 entries of FAT, and what the exFAT specification allows. Longer ones are taken for damage.
const LONGEST: u64 = 65536 * 32;
const LONGEST_EXFAT: u64 = 256 << 20;
/// Clusters whose table is read: eight bytes of memory each. A card of 2 TiB with clusters of 32 KiB has as many.
const MOST_CLUSTERS: u32 = 1 << 26;

impl Tree {
    /// Reads the tables and all directories of a volume whose boot sector says `volume`; `read` fills a buffer from a byte of
    /// the volume.
    ///
    /// # Errors
    /// `read` failed, or the volume contradicts itself: chains that meet, end too early or leave the volume.
    pub fn read<E>(volume: &Volume, mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<Tree, TreeError<E>> {
        let mut whole = |at: u64, len: u64| -> Result<Vec<u8>, TreeError<E>> {
            let mut bytes = vec![0; len as usize];
            for (i, piece) in bytes.chunks_mut(PIECE).enumerate() {
                read(at + (i * PIECE) as u64, piece).map_err(TreeError::Read)?;
            }
            Ok(bytes)
        };
        if volume.clusters > MOST_CLUSTERS {
            return Err(TreeError::Damaged(format!("{} clusters are more than this program reads", volume.clusters)));
        }
        // A table may be longer than its clusters need.
        let bits = match volume.kind {
            FatType::Fat12 => 12,
            FatType::Fat16 => 16,
            _ => 32,
        };
        let used = ((u64::from(volume.clusters) + 2) * bits).div_ceil(8 * volume.sector) * volume.sector;
        let raw = whole(volume.fat_start, used)?;
        if volume.kind == FatType::ExFat {
            return exfat(volume, &raw, &mut whole);
        }
        let mut copies_differ = false;
        for copy in 1..u64::from(volume.fats) {
            copies_differ |= whole(volume.fat_start + copy * volume.fat_length, used)? != raw;
        }
        let table = (0..volume.clusters + 2).map(|c| number(volume.kind, &raw, c)).collect();
        let mut tree = Tree { volume: volume.clone(), table, nodes: vec![], lost: 0, copies_differ };
        let mut owned = vec![false; tree.table.len()];
        // The root directory of FAT12 and FAT16 is no chain.
        let mut dirs: Vec<(String, Option<Vec<u32>>, usize)> = vec![];
        match volume.root_cluster {
            None => dirs.push((String::new(), None, 0)),
            Some(first) => {
                let chain = tree.chain("the root directory", first, &mut owned)?;
                tree.nodes.push(Node { path: String::new(), directory: true, size: 0, chain: chain.clone(), entry: None });
                dirs.push((String::new(), Some(chain), 0));
            }
        }
        while let Some((dir, chain, depth)) = dirs.pop() {
            let parts = match (chain, volume.root_start) {
                (Some(chain), _) => tree.parts(&dir, &chain, &mut whole)?,
                (None, Some(at)) => vec![(at, whole(at, volume.data_start - at)?)],
                (None, None) => return Err(TreeError::Damaged("no root directory".into())),
            };
            for found in entries(&parts) {
                let path = if dir.is_empty() { found.name.clone() } else { format!("{dir}/{}", found.name) };
                let damaged = |why: String| TreeError::Damaged(format!("{path}: {why}"));
                // The upper half is something else on FAT12 and FAT16.
                let first = if volume.kind == FatType::Fat32 { found.first } else { found.first & 0xffff };
                let chain = match first {
                    0 => vec![],
                    first => tree.chain(&path, first, &mut owned)?,
                };
                let need = found.size.div_ceil(volume.cluster);
                if !found.directory && chain.len() as u64 != need {
                    return Err(damaged(format!("{} bytes need {need} clusters, and it has {}", found.size, chain.len())));
                }
                if found.directory {
                    if chain.is_empty() || depth >= DEEPEST {
                        return Err(damaged("a directory without a cluster, or too deep".into()));
                    }
                    dirs.push((path.clone(), Some(chain.clone()), depth + 1));
                }
                tree.nodes.push(Node { path, directory: found.directory, size: found.size, chain, entry: Some(found.at) });
            }
        }
        let used = |c: usize| !matches!(tree.mark(c as u32), Mark::Free | Mark::Bad);
        tree.lost = (2..tree.table.len()).filter(|&c| used(c) && !owned[c]).count() as u32;
        Ok(tree)
    }

    /// What the table says of a cluster.
    pub fn mark(&self, cluster: u32) -> Mark {
        let (bad, end) = match self.volume.kind {
            FatType::Fat12 => (0xff7, 0xff8),
            FatType::Fat16 => (0xfff7, 0xfff8),
            _ => (0x0fff_fff7, 0x0fff_fff8),
        };
        match self.table[cluster as usize] {
            0 => Mark::Free,
            n if n >= end => Mark::End,
            n if n == bad => Mark::Bad,
            n => Mark::Next(n),
        }
    }

    /// First byte of a cluster, from the start of the volume.
    pub fn place(&self, cluster: u32) -> u64 {
        self.volume.place(cluster)
    }

    /// Free runs, ascending: first cluster and number of clusters.
    pub fn free_runs(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = vec![];
        for c in (2..self.table.len() as u32).filter(|&c| self.mark(c) == Mark::Free) {
            match runs.last_mut() {
                Some((start, n)) if *start + *n == c => *n += 1,
                _ => runs.push((c, 1)),
            }
        }
        runs
    }

    fn chain<E>(&self, path: &str, first: u32, owned: &mut [bool]) -> Result<Vec<u32>, TreeError<E>> {
        let mut chain = vec![];
        let mut at = first;
        loop {
            let damaged = |why: &str| Err(TreeError::Damaged(format!("{path}: cluster {at} {why}")));
            if !(2..self.table.len() as u32).contains(&at) {
                return damaged("is not on the volume");
            }
            if std::mem::replace(&mut owned[at as usize], true) {
                return damaged("belongs to two files, or to one twice");
            }
            chain.push(at);
            match self.mark(at) {
                Mark::End => return Ok(chain),
                Mark::Next(next) => at = next,
                Mark::Free => return damaged("is marked as free"),
                Mark::Bad => return damaged("is marked as bad"),
            }
        }
    }

    fn parts<E>(
        &self,
        dir: &str,
        chain: &[u32],
        whole: &mut impl FnMut(u64, u64) -> Result<Vec<u8>, TreeError<E>>,
    ) -> Result<Parts, TreeError<E>> {
        if chain.len() > 1 && chain.len() as u64 * self.volume.cluster > LONGEST {
            return Err(TreeError::Damaged(format!("{dir}/: a directory of {} clusters is too long", chain.len())));
        }
        chain.iter().map(|&c| Ok((self.place(c), whole(self.place(c), self.volume.cluster)?))).collect()
    }
}

/// Runs of neighbouring clusters of a chain: first cluster and number of clusters, in the order of the file.
pub fn runs(chain: &[u32]) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = vec![];
    for &c in chain {
        match out.last_mut() {
            Some((start, n)) if *start + *n == c => *n += 1,
            _ => out.push((c, 1)),
        }
    }
    out
}

fn number(kind: FatType, raw: &[u8], c: u32) -> u32 {
    let c = c as usize;
    let word = |at: usize| u32::from(raw[at]) | u32::from(raw[at + 1]) << 8;
    match kind {
        FatType::Fat12 if c.is_multiple_of(2) => word(c + c / 2) & 0xfff,
        FatType::Fat12 => word(c + c / 2) >> 4,
        FatType::Fat16 => word(2 * c),
        // The upper four bits are reserved.
        _ => (word(4 * c) | word(4 * c + 2) << 16) & 0x0fff_ffff,
    }
}

/// The mark behind the last cluster of a file in the made-up table of an exFAT volume.
const LAST: u32 = 0x0fff_ffff;

/// exFAT (Microsoft's specification, sections 6 and 7): entry sets of a file, its stream and its name.
fn exfat<E>(volume: &Volume, raw: &[u8], whole: &mut impl FnMut(u64, u64) -> Result<Vec<u8>, TreeError<E>>) -> Result<Tree, TreeError<E>> {
    let count = volume.clusters as usize + 2;
    let next = |c: u32| u32::from_le_bytes([0, 1, 2, 3].map(|i| raw[4 * c as usize + i]));
    let mut tree = Tree { volume: volume.clone(), table: vec![0; count], nodes: vec![], lost: 0, copies_differ: false };
    let mut owned = vec![false; count];
    let mut take = |path: &str, first: u32, bytes: Option<u64>, one_piece: bool| -> Result<Vec<u32>, TreeError<E>> {
        let need = bytes.map(|b| b.div_ceil(volume.cluster));
        let mut chain = vec![];
        let mut at = first;
        while need.is_none_or(|n| (chain.len() as u64) < n) {
            if !(2..count as u32).contains(&at) || std::mem::replace(&mut owned[at as usize], true) {
                return Err(TreeError::Damaged(format!("{path}: cluster {at} is not on the volume, or belongs to two files")));
            }
            chain.push(at);
            at = if one_piece { at + 1 } else { next(at) };
            if !one_piece && at >= 0xffff_fff8 {
                break;
            }
        }
        match need {
            Some(n) if n != chain.len() as u64 => {
                Err(TreeError::Damaged(format!("{path}: {n} clusters are needed, and the chain has {}", chain.len())))
            }
            _ => Ok(chain),
        }
    };
    let root = take("the root directory", volume.root_cluster.unwrap_or(0), None, false)?;
    let mut dirs = vec![(String::new(), root.clone(), 0)];
    tree.nodes.push(Node { path: String::new(), directory: true, size: 0, chain: root, entry: None });
    let mut bitmap = None;
    let mut system = vec![];
    while let Some((dir, dir_chain, depth)) = dirs.pop() {
        if dir_chain.len() as u64 * volume.cluster > LONGEST_EXFAT {
            return Err(TreeError::Damaged(format!("{dir}/: a directory of {} clusters is too long", dir_chain.len())));
        }
        let mut bytes = vec![];
        for &c in &dir_chain {
            bytes.extend(whole(tree.place(c), volume.cluster)?);
        }
        let long = |e: &[u8], at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| e[at + i]));
        let mut all = bytes.chunks_exact(32).enumerate();
        while let Some((i, e)) = all.next() {
            let first = |e: &[u8]| long(e, 20) as u32;
            match e[0] {
                0 => break,
                // The bitmap of free clusters and the table of capital letters.
                0x81 | 0x82 => {
                    let name = if e[0] == 0x81 { "the allocation bitmap" } else { "the up-case table" };
                    let chain = take(name, first(e), Some(long(e, 24)), false)?;
                    if e[0] == 0x81 && bitmap.is_none() {
                        bitmap = Some(chain.clone());
                    }
                    system.push(chain);
                }
                0x85 => {
                    let directory = e[4] & 0x10 != 0;
                    let stream = all.next().map(|s| s.1).filter(|s| s[0] == 0xc0);
                    let Some(s) = stream else {
                        return Err(TreeError::Damaged(format!("{dir}/: a file entry without its stream")));
                    };
                    let mut words = vec![];
                    for _ in 1..e[1] {
                        let Some((_, n)) = all.next().filter(|n| n.1[0] == 0xc1) else { break };
                        words.extend((1..16).map(|w| u16::from(n[2 * w]) | u16::from(n[2 * w + 1]) << 8));
                    }
                    words.truncate(usize::from(s[3]));
                    let name = String::from_utf16_lossy(&words);
                    let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                    let len = long(s, 24);
                    let chain = if len == 0 { vec![] } else { take(&path, first(s), Some(len), s[1] & 2 != 0)? };
                    if directory {
                        if depth >= DEEPEST {
                            return Err(TreeError::Damaged(format!("{path}: too deep")));
                        }
                        dirs.push((path.clone(), chain.clone(), depth + 1));
                    }
                    let cluster = dir_chain.get((i as u64 * 32 / volume.cluster) as usize);
                    let entry = cluster.map(|&c| tree.place(c) + i as u64 * 32 % volume.cluster);
                    tree.nodes.push(Node { path, directory, size: if directory { 0 } else { len }, chain, entry });
                }
                _ => {}
            }
        }
    }
    let Some(bitmap) = bitmap else { return Err(TreeError::Damaged("no allocation bitmap".into())) };
    let mut bits = vec![];
    for &c in &bitmap {
        bits.extend(whole(tree.place(c), volume.cluster)?);
    }
    for (c, &owned) in owned.iter().enumerate().skip(2) {
        let used = bits.get((c - 2) / 8).is_some_and(|b| b >> ((c - 2) % 8) & 1 != 0);
        if owned && !used {
            return Err(TreeError::Damaged(format!("cluster {c} belongs to a file and is marked as free")));
        }
        tree.table[c] = if used { LAST } else { 0 };
        tree.lost += u32::from(used && !owned);
    }
    for chain in tree.nodes.iter().map(|n| &n.chain).chain(&system) {
        for pair in chain.windows(2) {
            tree.table[pair[0] as usize] = pair[1];
        }
    }
    Ok(tree)
}

struct Found {
    name: String,
    directory: bool,
    size: u64,
    first: u32,
    at: u64,
}

/// The entries of a directory, given in parts with their places; names by their long form where there is one.
fn entries(parts: &Parts) -> Vec<Found> {
    let mut out = vec![];
    let mut long: Vec<(u8, Vec<u16>)> = vec![];
    for (place, bytes) in parts {
        for (i, e) in bytes.chunks_exact(32).enumerate() {
            match (e[0], e[11]) {
                (0, _) => return out,
                (0xe5, _) => long.clear(),
                (n, 0x0f) => {
                    let words = [1usize, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
                    long.push((n & 0x3f, words.iter().map(|&w| u16::from(e[w]) | u16::from(e[w + 1]) << 8).collect()));
                }
                // A volume label is no file.
                (_, a) if a & 0x08 != 0 => long.clear(),
                (b'.', _) => long.clear(),
                (_, a) => {
                    let short = short_name(e);
                    // The parts stand before the entry, last part first; a gap or another order means that they are stale.
                    let fits = !long.is_empty() && long.iter().rev().enumerate().all(|(k, (n, _))| usize::from(*n) == k + 1);
                    let text: Vec<u16> =
                        long.iter().rev().flat_map(|(_, w)| w.iter().copied()).take_while(|&w| w != 0 && w != 0xffff).collect();
                    let name = if fits { String::from_utf16_lossy(&text) } else { short };
                    long.clear();
                    let half = |at: usize| u32::from(e[at]) | u32::from(e[at + 1]) << 8;
                    let size = u64::from(half(28) | half(30) << 16);
                    let directory = a & 0x10 != 0;
                    let first = half(26) | half(20) << 16;
                    out.push(Found { name, directory, size: if directory { 0 } else { size }, first, at: place + 32 * i as u64 });
                }
            }
        }
    }
    out
}

fn short_name(e: &[u8]) -> String {
    let part =
        |bytes: &[u8]| -> String { bytes.iter().map(|&b| if b < 0x80 { b as char } else { '_' }).collect::<String>().trim_end().into() };
    let (name, ext) = (part(&e[..8]), part(&e[8..11]));
    if ext.is_empty() { name } else { format!("{name}.{ext}") }
}
