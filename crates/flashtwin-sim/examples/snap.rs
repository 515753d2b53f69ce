//! x
use flashtwin::*; use flashtwin_sim::*; use std::time::Instant;
fn main(){ for dev in ["ecr","tlc-nvme"] { let spec=DeviceSpec::parse(flashtwin::spec::builtin(dev).unwrap(),dev).unwrap();
 let mut ssd=Ssd::new(&spec); let t=Instant::now(); ssd.fill_steady(1); println!("{dev} steady {:?}",t.elapsed());
 let p=std::path::Path::new("/tmp/ecr.snap"); let t=Instant::now(); save_snapshot(p,&ssd,"x").unwrap(); println!("save {:?} {} bytes",t.elapsed(), std::fs::metadata(p).unwrap().len());
 drop(ssd); let mut s2=Ssd::new(&spec);
 for _ in 0..4 { let t=Instant::now(); load_snapshot(p,&mut s2).unwrap(); println!("load {:?}",t.elapsed());}
 let t=Instant::now(); s2.check().unwrap(); println!("check {:?}",t.elapsed());
 let b=std::fs::read(p).unwrap(); let t=Instant::now(); let c=crc32fast::hash(&b); println!("crc {:?} {c}",t.elapsed());
 let t=Instant::now(); let x=Ssd::new(&spec); println!("new {:?}",t.elapsed()); drop(x);
 std::fs::remove_file(p).unwrap(); } }
