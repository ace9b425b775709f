lensData("runs",[]);
