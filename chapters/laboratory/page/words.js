// Numbers as text.
{
  const laboratory = (window.laboratory ??= {});
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  laboratory.raised = (whole) => [...String(whole)].map((sign) => RAISED[sign]).join("");
  laboratory.powerOfTen = (exponent) => (exponent === 0 ? "1" : `10${laboratory.raised(exponent)}`);

  // Return four digits, with a power of ten if that is shorter.
  laboratory.say = (value) => {
    if (value === 0) return "0";
    const [digits, exponent] = value.toExponential(3).split("e").map(Number);
    if (exponent >= -3 && exponent < 6) return String(Number(value.toPrecision(4))).replace("-", "−");
    return `${digits === 1 ? "" : `${String(digits).replace("-", "−")} × `}${laboratory.powerOfTen(exponent)}`;
  };

  // Return the number of tokens that is nearest to a power of ten.
  laboratory.tokens = (decades) => Math.round(10 ** decades);
}
