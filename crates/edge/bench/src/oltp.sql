DO $all$ BEGIN
CREATE OR REPLACE FUNCTION bench_new_order(w int, d int, c int, n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o int; chosen int; amount decimal; stocked stock%ROWTYPE; taxes record;
BEGIN
  SELECT c_discount, c_last, c_credit, w_tax INTO taxes FROM customer, warehouse
    WHERE w_id = w AND c_w_id = w_id AND c_d_id = d AND c_id = c;
  SELECT d_next_o_id INTO o FROM district WHERE d_w_id = w AND d_id = d FOR UPDATE;
  UPDATE district SET d_next_o_id = o + 1 WHERE d_w_id = w AND d_id = d;
  INSERT INTO orders VALUES (o, d, w, c, now(), NULL, n, 1);
  INSERT INTO new_order VALUES (o, d, w);
  FOR line IN 1..n LOOP
    chosen := ((floor(random() * 8192)::int | (1 + floor(random() * 100000)::int)) + 259) % 100000 + 1;
    SELECT i_price * 5 INTO amount FROM item WHERE i_id = chosen;
    SELECT * INTO stocked FROM stock WHERE s_w_id = w AND s_i_id = chosen FOR UPDATE;
    UPDATE stock SET s_quantity = CASE WHEN s_quantity >= 15 THEN s_quantity - 5 ELSE s_quantity + 86 END,
      s_ytd = s_ytd + 5, s_order_cnt = s_order_cnt + 1 WHERE s_w_id = w AND s_i_id = chosen;
    INSERT INTO order_line VALUES (o, d, w, line, chosen, w, NULL, 5, amount, stocked.s_dist_01);
  END LOOP;
END $$;
CREATE OR REPLACE FUNCTION bench_payment(w int, d int, c int, n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE district SET d_ytd = d_ytd + n WHERE d_w_id = w AND d_id = d;
  UPDATE warehouse SET w_ytd = w_ytd + n WHERE w_id = w;
  PERFORM c_id FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c FOR UPDATE;
  UPDATE customer SET c_balance = c_balance - n, c_ytd_payment = c_ytd_payment + n, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = w AND c_d_id = d AND c_id = c;
  INSERT INTO history VALUES (c, d, w, d, w, now(), n, 'bench');
END $$;
CREATE OR REPLACE FUNCTION bench_order_status(w int, d int, c int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE o int; lines bigint;
BEGIN
  SELECT o_id INTO o FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = c ORDER BY o_id DESC LIMIT 1;
  SELECT COUNT(ol_amount) INTO lines FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
  RETURN lines;
END $$;
CREATE OR REPLACE FUNCTION bench_delivery(w int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o int; c int;
BEGIN
  FOR d IN 1..10 LOOP
    SELECT no_o_id INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    CONTINUE WHEN o IS NULL;
    DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
    UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = w AND o_d_id = d AND o_id = o RETURNING o_c_id INTO c;
    UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
    UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1, c_balance = c_balance +
      (SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o)
      WHERE c_w_id = w AND c_d_id = d AND c_id = c;
  END LOOP;
END $$;
CREATE OR REPLACE FUNCTION bench_stock_level(w int, d int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE o int; short bigint;
BEGIN
  SELECT d_next_o_id INTO o FROM district WHERE d_w_id = w AND d_id = d;
  SELECT COUNT(DISTINCT s_i_id) INTO short FROM order_line, stock WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id < o
    AND ol_o_id >= o - 20 AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < 15;
  RETURN short;
END $$;
END $all$
