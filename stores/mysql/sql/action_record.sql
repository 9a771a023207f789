INSERT INTO {audit} (`who`, `action`, `subject`) VALUES ({who}, {action}, {subject})
