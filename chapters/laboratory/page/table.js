// Interpolate a table of the page: the polynomial through all nodes of a grid, one axis after another.
// The formula is that of chapters/laboratory/grids.py, whose error is measured.
const laboratory = (window.laboratory ??= {});

// Return the columns, as texts, of the rows in which some columns have the values of `only`.
laboratory.table = (figure, only = {}) => {
  const [names, ...rows] = window.companionTables[figure].trim().split("\n").map((line) => line.split(","));
  const taken = rows.filter((row) => Object.entries(only).every(([name, text]) => row[names.indexOf(name)] === text));
  return Object.fromEntries(names.map((name, place) => [name, taken.map((row) => row[place])]));
};

// Return, at `at`, the polynomials that are 1 at one node and 0 at the others (barycentric formula).
laboratory.axis = (nodes) => {
  const width = (nodes.at(-1) - nodes[0]) / 4;
  const weights = nodes.map((here) => nodes.reduce((product, other) => (other === here ? product : product * width / (here - other)), 1));
  return (at) => {
    const place = nodes.indexOf(at);
    if (place >= 0) return nodes.map((_, index) => Number(index === place));
    const terms = weights.map((weight, index) => weight / (at - nodes[index]));
    const sum = terms.reduce((one, other) => one + other);
    return terms.map((term) => term / sum);
  };
};

// Return read(column, …at). `axes` are the columns with the coordinates; the last one varies fastest.
laboratory.grid = (figure, axes, columns, only) => {
  const table = laboratory.table(figure, only);
  const bases = axes.map((name) => laboratory.axis([...new Set(table[name].map(Number))]));
  const numbers = Object.fromEntries(columns.map((name) => [name, table[name].map(Number)]));
  return (column, ...at) => at.reduce((values, place, number) => {
    const basis = bases[number](place);
    const rest = values.length / basis.length;
    const sums = new Float64Array(rest);
    basis.forEach((weight, node) => {
      for (let index = 0; weight !== 0 && index < rest; index += 1) sums[index] += weight * values[node * rest + index];
    });
    return sums;
  }, numbers[column])[0];
};
