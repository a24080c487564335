mod common;
use nandscope_sim::{Model, cards};
#[test]
#[ignore]
fn peek() {
    let name = std::env::var("CARD").unwrap();
    let model = Model::parse(cards::text(&name).unwrap(), &name).unwrap();
    let p = common::probe_model(&model, 2, true);
    println!("{}", common::line(&p, &model));
    for r in &p.runs {
        println!("== {} {:?} {} samples", r.experiment, r.ended, r.samples.len());
        if std::env::var("RUN").is_ok_and(|x| x == r.experiment) {
            for c in &r.cells {
                println!("{} {:?}", c.label, c.set);
                for t in r.trials(c.id) {
                    println!(
                        "   {}",
                        t.iter()
                            .map(|s| format!("{}@{}:{:.2}ms/{}", s.at >> 10, s.role, s.took.millis(), s.len >> 10))
                            .collect::<Vec<_>>()
                            .join(" ")
                    );
                }
            }
        }
    }
}
